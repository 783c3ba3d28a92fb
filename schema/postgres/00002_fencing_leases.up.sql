-- +goose Up
CREATE TABLE IF NOT EXISTS fencing_leases (
	key          text        NOT NULL PRIMARY KEY,
	lock_id      text        UNIQUE,
	holder       text        NOT NULL,
	session      bigint,
	token        bigint      NOT NULL,
	acquired_at  timestamptz NOT NULL,
	expires_at   timestamptz NOT NULL,
	notify_until timestamptz
);

CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at);
