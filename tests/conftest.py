"""What every test may ask for: a scripted server (`server`), an address of nobody (`unused_url`), `real_model`."""

pytest_plugins = ["real_model", "scripted_server"]
