"""What looks again at results: models, functions, keywords; and the retriever that lets them."""
