package seal

// TokensSetting is the setting of PostgreSQL that has a transaction's tokens.
const TokensSetting = "sqlfence.tokens"

// takenToken is an expression: the transaction's token of a row's name, or NULL. What was found for the row before is kept in
// two settings, with the transaction's number and its tokens.
const takenToken = "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting({proof of}, true), pg_catalog.concat({token name}, ' ', " +
	"pg_catalog.txid_current(), ' ', pg_catalog.current_setting('sqlfence.tokens', true))) " +
	"THEN pg_catalog.int8in(pg_catalog.textout(pg_catalog.current_setting({proof token}, true))) ELSE {proof}({token name}) END"

// postgresProof returns the transaction's token of a name, or NULL. No function of PostgreSQL's says whether a setting
// holds for the transaction or for the session, so the value has to show it, in one of two ways:
//
//   - It has the transaction's number among its tokens.
//   - A setting that was changed in a transaction has a place on a stack, in the memory of the transaction; one more
//     change at the same level of subtransactions takes no further place. So the setting is set to what it is, and the
//     memory compared: where it grows, the value is older than the level, and may be the session's. As a control the
//     memory has to grow by a setting that has no place yet.
//
// What was compared once is noted with the transaction's number, in a setting that a rollback to a savepoint takes back
// like the tokens. Where the value is refused an error takes back the place: else it would count at the next look.
//
// The function is STABLE to have no snapshot of its own in that memory, and runs with the rights of the table's owner, who may
// read it.
const postgresProof = `
DECLARE
	tokens pg_catalog.text := pg_catalog.current_setting('sqlfence.tokens', true);
	own pg_catalog.text;
	taken pg_catalog.text;
	list pg_catalog.text;
	place pg_catalog.int4;
	before pg_catalog.int8;
	behind pg_catalog.int8;
	control pg_catalog.int8;
BEGIN
	IF COALESCE(pg_catalog.texteq(tokens, ''), true) THEN
		RETURN NULL;
	END IF;
	own := pg_catalog.concat(' ', pg_catalog.txid_current(), ' ');
	taken := pg_catalog.current_setting('sqlfence.taken', true);
	list := pg_catalog.concat(' ', tokens, ' ');
	IF NOT COALESCE(pg_catalog.texteq(taken, pg_catalog.concat(own, tokens)), false) THEN
		IF pg_catalog.textregexne(list, '^ *([^[:space:]]+:[0-9]{15} +|[0-9]+ +)+$') THEN
			RAISE EXCEPTION 'sqlfence: table %% is sealed: the setting sqlfence.tokens isn''t a list of tokens with blanks between them, like ''%%:000000000000042''', {name}, $1
				USING ERRCODE = 'FT001';
		END IF;
		IF pg_catalog.textregexeq(list, ' [0-9]+ ') THEN
			IF pg_catalog.int4eq(pg_catalog.strpos(list, own), 0) THEN
				RAISE EXCEPTION 'sqlfence: table %% is sealed: the setting sqlfence.tokens is that of another transaction (set it with txid_current() of this one)', {name}
					USING ERRCODE = 'FT001';
			END IF;
			PERFORM pg_catalog.set_config('sqlfence.taken', pg_catalog.concat(own, tokens), true);
		ELSE
			IF COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('pg_catalog.pg_get_backend_memory_contexts()')::pg_catalog.oid, 'EXECUTE'), false) THEN
				SELECT m.used_bytes INTO before FROM pg_catalog.pg_get_backend_memory_contexts() AS m WHERE pg_catalog.texteq(m.name, 'TopTransactionContext');
				PERFORM pg_catalog.set_config('sqlfence.tokens', tokens, true);
				SELECT m.used_bytes INTO behind FROM pg_catalog.pg_get_backend_memory_contexts() AS m WHERE pg_catalog.texteq(m.name, 'TopTransactionContext');
				PERFORM pg_catalog.set_config('sqlfence.taken', pg_catalog.concat(own, tokens), true);
				SELECT m.used_bytes INTO control FROM pg_catalog.pg_get_backend_memory_contexts() AS m WHERE pg_catalog.texteq(m.name, 'TopTransactionContext');
			END IF;
			IF NOT COALESCE(pg_catalog.int8eq(before, behind) AND (pg_catalog.int8gt(control, behind) OR pg_catalog.starts_with(taken, own)), false) THEN
				RAISE EXCEPTION 'sqlfence: table %% is sealed: the setting sqlfence.tokens may be the session''s, which proves nothing (set it in this transaction and at the savepoint of the write, by set_config(''sqlfence.tokens'', …, true), or anywhere with the transaction''s number in it: concat(…, '' '', txid_current()))', {name}
					USING ERRCODE = 'FT001';
			END IF;
		END IF;
	END IF;
	LOOP
		place := pg_catalog.strpos(list, pg_catalog.concat(' ', $1, ':'));
		IF pg_catalog.int4eq(place, 0) THEN
			RETURN NULL;
		END IF;
		list := pg_catalog.substr(list, pg_catalog.int4pl(pg_catalog.int4pl(place, pg_catalog.length($1)), 2));
		IF pg_catalog.textregexeq(list, '^[0-9]{15} ') THEN
			PERFORM pg_catalog.set_config({proof of}, pg_catalog.concat($1, own, tokens), true), pg_catalog.set_config({proof token}, pg_catalog."left"(list, 15), true);
			RETURN pg_catalog.int8in(pg_catalog.textout(pg_catalog."left"(list, 15)));
		END IF;
	END LOOP;
END `
