"""What goes over the wire: the bodies of requests and answers, as models that describe themselves."""
