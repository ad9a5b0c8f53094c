"""Call functions in other processes: of this machine, or wherever a pool starts them."""
