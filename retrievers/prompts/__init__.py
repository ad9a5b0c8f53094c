"""The built-in prompts of strategies and answers, in Chinese and English."""
