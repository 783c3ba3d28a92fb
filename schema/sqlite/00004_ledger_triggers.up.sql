-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS sqlfence_ledger (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_insert_v1 BEFORE INSERT ON fencing_tokens
WHEN EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name)
	OR EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.name = NEW.name AND t.token > COALESCE(NEW.token, 0))
BEGIN
	DELETE FROM sqlfence_ledger WHERE name = NEW.name;
	INSERT INTO sqlfence_ledger (name, token) SELECT NEW.name, t.token FROM fencing_tokens AS t WHERE t.name = NEW.name;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_inserted_v1 AFTER INSERT ON fencing_tokens
WHEN typeof(NEW.token) NOT IN ('integer', 'null')
	OR EXISTS (SELECT 1 FROM sqlfence_ledger AS l WHERE l.name = NEW.name AND l.token > COALESCE(NEW.token, 0))
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: tokens in fencing_tokens never fall, and are integers');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_row_v1 BEFORE INSERT ON fencing_tokens
WHEN EXISTS (SELECT 1 FROM fencing_tokens AS t WHERE t.rowid = NEW.rowid AND t.name <> NEW.name)
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: the row has another one');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_update_v1 BEFORE UPDATE ON fencing_tokens
WHEN NEW.name IS NOT OLD.name OR NEW.rowid <> OLD.rowid OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0)
	OR typeof(NEW.token) NOT IN ('integer', 'null')
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: tokens in fencing_tokens never fall and are integers, and its names are kept');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: DELETE is refused')
	WHERE OLD.name = '' OR COALESCE(OLD.token, 0) >
		COALESCE((SELECT t.token FROM fencing_tokens AS t WHERE t.name = ''), 0);
	DELETE FROM sqlfence_ledger WHERE name = OLD.name;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_first_insert_v1 AFTER INSERT ON fencing_tokens
WHEN NEW.token > 0 AND NEW.name <> ''
	AND NEW.token <= (SELECT t.token FROM fencing_tokens AS t WHERE t.name = '')
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: the first token of a name has to be above those of names that were deleted');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_first_update_v1 AFTER UPDATE ON fencing_tokens
WHEN COALESCE(OLD.token, 0) <= 0 AND NEW.token > 0 AND NEW.name <> ''
	AND NEW.token <= (SELECT t.token FROM fencing_tokens AS t WHERE t.name = '')
BEGIN
	SELECT RAISE(ABORT, 'sqlfence: the first token of a name has to be above those of names that were deleted');
END;
-- +goose StatementEnd
