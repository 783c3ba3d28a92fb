-- +goose Up
ALTER TABLE books ADD COLUMN price bigint NOT NULL DEFAULT 10;
