"""Turn files into documents: by their content, in processes of their own, for any reader."""
