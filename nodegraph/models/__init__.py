"""Language models: how they are asked, and what is read out of their answers."""
