-- +goose Up
CREATE TABLE IF NOT EXISTS rowlocks (
	table_name text NOT NULL,
	row_key    text NOT NULL,
	user_id    text NOT NULL,
	session    text NOT NULL,
	since      bigint NOT NULL,
	expiry     bigint NOT NULL,
	heartbeat  bigint NOT NULL,
	PRIMARY KEY (table_name, row_key)
);
