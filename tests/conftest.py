"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL,
emulators of DynamoDB and Firestore.
"""

pytest_plugins = ["real_dynamodb", "real_firestore", "real_model", "real_postgres", "scripted_server"]
