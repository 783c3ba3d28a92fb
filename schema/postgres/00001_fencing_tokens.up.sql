-- +goose Up
CREATE TABLE IF NOT EXISTS fencing_tokens (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
);
