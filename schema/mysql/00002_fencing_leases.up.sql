-- +goose Up
CREATE TABLE IF NOT EXISTS fencing_leases (
	`key`       varbinary(512) NOT NULL PRIMARY KEY,
	lock_id     varbinary(22)  UNIQUE,
	holder      varbinary(512) NOT NULL,
	session     bigint,
	token       bigint         NOT NULL,
	acquired_at bigint         NOT NULL,
	expires_at  bigint         NOT NULL,
	KEY fencing_leases_expires_at (expires_at)
) ENGINE=InnoDB;
