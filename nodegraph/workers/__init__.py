"""Call functions in other processes, on this machine or wherever a pool starts them."""
