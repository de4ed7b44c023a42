"""The night again: any moment of a session, from what its files say of when."""
