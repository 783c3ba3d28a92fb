package sealsql

import "strings"

// takenToken is an SQL expression for the token of a row's name in the transaction's setting sqlfence.tokens, or NULL.
// Two settings cache the result for the previous row, with the transaction's number and its tokens.
const takenToken = "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting({proof of}, true), " +
	"pg_catalog.concat({token name}, ' ', pg_catalog.txid_current(), ' ', " +
	"pg_catalog.current_setting('sqlfence.tokens', true))) THEN " +
	"pg_catalog.int8in(pg_catalog.textout(pg_catalog.current_setting({proof token}, true))) ELSE {proof}({token " +
	"name}) END"

// commitTrigger is the number, as SQL, of the trigger that verifies the tokens when the transaction ends. inDoubt is
// its condition: a write has passed in doubt (see sealTransaction). doubted is a part of inDoubt as the catalogue shows
// it.
const (
	commitTrigger = "6"
	inDoubt       = "pg_catalog.textne(pg_catalog.current_setting('sqlfence.doubt', true), '')"
	doubted       = "WHEN (textne(current_setting(''sqlfence.doubt''::text, true), ''''::text))"
)

// sealTransaction is the body of a function that returns the transaction's token of a name, or NULL. No function of
// PostgreSQL shows whether a setting holds for the transaction or for the session. So the body must find out, in one of
// two ways, that the value belongs to the transaction:
//
//   - The value has the transaction's number among its tokens.
//   - A setting changed in a transaction has an entry on a stack, in the transaction's memory; another change at the
//     same level of subtransactions adds no entry. So the function sets the setting to its current value, and compares
//     the memory. If the memory grows, the value is older than the level, and may be the session's. As a control the
//     memory must grow for a setting without an entry.
//
// In a subtransaction the value may be that of the outer transaction, which the memory doesn't show. So the write
// passes without a result, in doubt, and sealLate verifies the value when the transaction ends. sealLate can verify
// only one list of tokens, so a second, different list doesn't pass in doubt.
//
// The result is stored with the transaction's number, in a setting that a rollback to a savepoint undoes like the
// tokens. If the value is refused, an error undoes the stack entry, which would otherwise make the next check pass.
//
// The function is STABLE so that its snapshot takes no transaction memory, and runs with the privileges of the table's
// owner, who may read the memory's size.
var sealTransaction = `
DECLARE
	tokens pg_catalog.text := pg_catalog.current_setting('sqlfence.tokens', true);
	own pg_catalog.text;
	taken pg_catalog.text;
	list pg_catalog.text;
	place pg_catalog.int4;
	` + lookVariables + `
BEGIN
	IF COALESCE(pg_catalog.texteq(tokens, ''), true) THEN
		RETURN NULL;
	END IF;
	own := pg_catalog.concat(' ', pg_catalog.txid_current(), ' ');
	taken := pg_catalog.current_setting('sqlfence.taken', true);
	list := pg_catalog.concat(' ', tokens, ' ');
	IF NOT COALESCE(pg_catalog.texteq(taken, pg_catalog.concat(own, tokens)), false) THEN
		IF pg_catalog.textregexne(list, '^ *(?:[^[:space:]]+:[0-9]{15} +|[0-9]+ +)+$') THEN
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
			` + look + `
			IF nested THEN
				IF NOT COALESCE(pg_catalog.texteq(pg_catalog.current_setting('sqlfence.doubt', true), pg_catalog.concat(own, tokens)), false)
					AND (` + doubts + ` OR NOT pg_catalog.pg_try_advisory_xact_lock(` + doubtLock +
	`, pg_catalog.pg_backend_pid())) THEN
					RAISE EXCEPTION 'sqlfence: table %% is sealed: the setting sqlfence.tokens was changed behind a write at a savepoint, where it is looked at when the transaction ends (set it with the transaction''s number in it: concat(…, '' '', txid_current()))', {name}
						USING ERRCODE = 'FT001';
				END IF;
				PERFORM pg_catalog.set_config('sqlfence.doubt', pg_catalog.concat(own, tokens), true), pg_catalog.set_config('sqlfence.taken', pg_catalog.concat(own, tokens), true);
			ELSIF NOT COALESCE(found_here, false) THEN
				` + refuseSession + `
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

// sealLate is the body of a trigger that fires when the transaction ends, for each row written in doubt (see
// sealTransaction): the tokens must be unchanged, and must belong to the transaction. The result for the first row is
// stored in a setting and lets later rows pass; RESET ALL removes the tokens and the result, so that nothing passes.
var sealLate = `
DECLARE
	tokens pg_catalog.text := pg_catalog.current_setting('sqlfence.tokens', true);
	own pg_catalog.text := pg_catalog.concat(' ', pg_catalog.txid_current(), ' ');
	taken pg_catalog.text := pg_catalog.current_setting('sqlfence.looked', true);
	` + lookVariables + `
BEGIN
	IF COALESCE(pg_catalog.texteq(pg_catalog.current_setting('sqlfence.doubt', true), '') AND pg_catalog.starts_with(taken, own), false) THEN
		RETURN NULL;
	END IF;
	` + lookAgain + `
	IF COALESCE(NOT found_here OR pg_catalog.textne(pg_catalog.current_setting('sqlfence.doubt', true), pg_catalog.concat(own, tokens)), true) THEN
		` + refuseSession + `
	END IF;
	PERFORM pg_catalog.set_config('sqlfence.doubt', '', true);
	RETURN NULL;
END `

// doubtLock is the first number of the advisory lock that a transaction holds since its first write in doubt (see
// sealTransaction); the second number is the session's. The lock shows the doubt even after RESET ALL has removed the
// settings. A rollback to a savepoint undoes the lock and the settings.
const doubtLock = "1936683110"

// doubts is a condition: the transaction holds doubtLock. PL/pgSQL evaluates doubts, on the left of OR, before it takes
// the lock there.
const doubts = "EXISTS (SELECT FROM pg_catalog.pg_locks AS l WHERE pg_catalog.texteq(l.locktype, 'advisory') " +
	"AND pg_catalog.int4eq(l.pid, pg_catalog.pg_backend_pid()) AND pg_catalog.oideq(l.classid, '" + doubtLock +
	"'::pg_catalog.oid) " +
	"AND pg_catalog.int2eq(l.objsubid, '2'::pg_catalog.int2))"

const lookVariables = `before pg_catalog.int8;
	behind pg_catalog.int8;
	control pg_catalog.int8;
	nested pg_catalog.bool := false;
	found_here pg_catalog.bool;`

// memory is a FROM clause for the size of the transaction's memory. A subtransaction has a separate memory context,
// which may remain after its release: then look still finds a subtransaction.
const memory = `pg_catalog.pg_get_backend_memory_contexts() AS m WHERE pg_catalog.texteq(m.name, ` +
	`'TopTransactionContext')`

// look sets nested to whether the write may be in a subtransaction. If it isn't, look sets found_here to whether the
// setting of the tokens was set in this transaction. The control (see sealTransaction) is to store the tokens in
// sqlfence.taken. RESET changes the setting to the default of the role, the database or the connection, so a value
// equal to that default isn't accepted as the transaction's.
var look = strings.NewReplacer("{noted}", "sqlfence.taken", "{looks}", "NOT nested").Replace(lookText)

// lookAgain is look without regard to nested, because an ending transaction may still have the memory contexts of
// former subtransactions. Its control stores the tokens in another setting, because sqlfence.taken may already have a
// stack entry.
var lookAgain = strings.NewReplacer("{noted}", "sqlfence.looked", "{looks}", "true").Replace(lookText)

const lookText = `IF COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('pg_catalog.pg_get_backend_memory_contexts()')::pg_catalog.oid, 'EXECUTE'), false) THEN
				SELECT pg_catalog.sum(CASE WHEN pg_catalog.texteq(m.name, 'TopTransactionContext') THEN m.used_bytes END)::pg_catalog.int8,
					pg_catalog.bool_or(pg_catalog.texteq(m.name, 'CurTransactionContext')) INTO before, nested FROM ` + memory + ` OR pg_catalog.texteq(m.name, 'CurTransactionContext');
				IF {looks} THEN
					PERFORM pg_catalog.set_config('sqlfence.tokens', tokens, true);
					SELECT m.used_bytes INTO behind FROM ` + memory + `;
					PERFORM pg_catalog.set_config('{noted}', pg_catalog.concat(own, tokens), true);
					SELECT m.used_bytes INTO control FROM ` + memory + `;
					found_here := pg_catalog.int8eq(before, behind) AND (pg_catalog.int8gt(control, behind) OR pg_catalog.starts_with(taken, own));
					IF found_here THEN
						PERFORM pg_catalog.set_config('sqlfence.tokens', NULL, true);
						found_here := COALESCE(pg_catalog.textne(pg_catalog.current_setting('sqlfence.tokens', true), tokens), true);
						PERFORM pg_catalog.set_config('sqlfence.tokens', tokens, true);
					END IF;
				END IF;
			END IF;`

const refuseSession = `RAISE EXCEPTION 'sqlfence: table %% is sealed: the setting sqlfence.tokens may be the session''s, which proves nothing (set it in this transaction, by set_config(''sqlfence.tokens'', …, true), best with the transaction''s number in it: concat(…, '' '', txid_current()))', {name}
					USING ERRCODE = 'FT001';`
