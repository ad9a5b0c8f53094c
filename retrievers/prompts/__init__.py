"""The built-in prompts for strategies and answers, in Chinese and English."""
