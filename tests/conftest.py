"""What every test may ask for: a scripted server (`server`), an address of nobody (`unused_url`), `real_model`, `postgres`."""

pytest_plugins = ["real_model", "real_postgres", "scripted_server"]
