CREATE TABLE books (
	id          integer PRIMARY KEY,
	isbn        text UNIQUE,
	price       integer NOT NULL DEFAULT 10,
	writer      bigint NOT NULL DEFAULT 0,
	fence_token bigint
);
