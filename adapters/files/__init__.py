"""Files of all formats beyond plain text: PDF, Office, web pages, books, mail, programs."""
