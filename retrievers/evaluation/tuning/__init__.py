"""Choose a set-up by questions: search a space of set-ups, report on questions held back."""
