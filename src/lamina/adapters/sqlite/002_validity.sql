-- Version 2 of a collection: what is superseded or no longer valid is found without reading the rest.

CREATE INDEX {memories_by_superseding} ON {memories} (partition) WHERE superseded_by IS NOT NULL;

CREATE INDEX {memories_by_validity} ON {memories} (partition, valid_until) WHERE valid_until IS NOT NULL;
