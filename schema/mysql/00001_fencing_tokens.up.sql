-- +goose Up
CREATE TABLE IF NOT EXISTS fencing_tokens (
	name  varbinary(512) NOT NULL PRIMARY KEY,
	token bigint         NOT NULL
) ENGINE=InnoDB;
