-- +goose Up
CREATE TABLE IF NOT EXISTS fencing_leases (
	key         text    NOT NULL PRIMARY KEY,
	lock_id     text    UNIQUE,
	holder      text    NOT NULL,
	token       bigint  NOT NULL,
	acquired_at integer NOT NULL,
	expires_at  integer NOT NULL
);

CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at);
