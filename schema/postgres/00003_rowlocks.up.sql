-- +goose Up
CREATE TABLE IF NOT EXISTS rowlocks (
	table_name text NOT NULL,
	row_key    text NOT NULL,
	user_id    text NOT NULL,
	session    text NOT NULL,
	since      timestamptz NOT NULL,
	expiry     timestamptz NOT NULL,
	heartbeat  timestamptz NOT NULL,
	PRIMARY KEY (table_name, row_key)
);
