-- Version 3 of a collection: a number that is another one whenever the vectors of a partition have changed, so that
-- what was read of them can be kept in memory for as long as it is right, whoever writes.

ALTER TABLE {partitions} ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
