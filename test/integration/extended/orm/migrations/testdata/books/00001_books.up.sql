-- +goose Up
CREATE TABLE books (
	id    bigint NOT NULL PRIMARY KEY,
	title text   NOT NULL
);
