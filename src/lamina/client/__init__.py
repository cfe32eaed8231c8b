"""The client of the HTTP server, with the verbs of the library."""
