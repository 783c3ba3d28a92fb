CREATE TABLE books (
	id          bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
	isbn        varchar(255) NOT NULL UNIQUE,
	title       text NOT NULL,
	price       bigint NOT NULL,
	prequel_id  bigint,
	deleted_at  datetime,
	fence_token bigint,
	FOREIGN KEY (prequel_id) REFERENCES books (id)
);
