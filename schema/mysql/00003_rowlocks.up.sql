-- +goose Up
CREATE TABLE IF NOT EXISTS rowlocks (
	table_name varbinary(520)  NOT NULL,
	row_key    varbinary(2500) NOT NULL CHECK (LENGTH(row_key) < 2500),
	user_id    varbinary(2500) NOT NULL CHECK (LENGTH(user_id) < 2500),
	session    varbinary(2500) NOT NULL CHECK (LENGTH(session) < 2500),
	since      bigint NOT NULL,
	expiry     bigint NOT NULL,
	heartbeat  bigint NOT NULL,
	PRIMARY KEY (table_name, row_key)
) ENGINE=InnoDB;
