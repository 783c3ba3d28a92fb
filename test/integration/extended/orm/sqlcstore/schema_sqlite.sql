CREATE TABLE books (
	id          integer PRIMARY KEY,
	isbn        text NOT NULL UNIQUE,
	title       text NOT NULL,
	price       bigint NOT NULL,
	prequel_id  bigint REFERENCES books (id),
	deleted_at  datetime,
	fence_token bigint
);
