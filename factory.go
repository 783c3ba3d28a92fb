package sqlfence

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// errorFactory turns the core's facts into this package's error types and log records.
type errorFactory struct{}

func (errorFactory) Stale(c core.Compared, err error) error {
	return &StaleError{Table: c.Table, Token: Token(c.Token), Current: c.Current, gone: c.Gone,
		refusedAsStale: refusedAsStale{err}}
}

func (errorFactory) NotIssued(c core.Compared, err error) error {
	return &NotIssuedError{Table: c.Table, Token: Token(c.Token), Current: c.Current, claim: c.Claim,
		refusedAsNotIssued: refusedAsNotIssued{err}}
}

func (errorFactory) Unguardable(u core.Unguarded, err error) error {
	return &UnguardableError{
		Table: u.Table, Column: u.Column, Server: u.Server, Reason: u.Reason, Offset: u.Offset,
		refusedAsUnguardable: refusedAsUnguardable{err},
	}
}

func (errorFactory) Conflict(c core.Conflict, err error) error {
	return &ConflictError{
		Table: c.Table, Expected: c.Expected, Current: c.Current, Assigned: c.Assigned, claim: c.Claim,
		refusedAsConflict: refusedAsConflict{err},
	}
}

func (errorFactory) Locked(l core.Lock, anonymous bool, err error) error {
	return &LockedError{Table: l.Table, By: l.By, Since: l.Since, Expiry: l.Expiry, anonymous: anonymous,
		refusedAsLocked: refusedAsLocked{err}}
}

func (errorFactory) Missing(m setuperr.Missing, err error) error {
	return &SetupError{Missing: m.Name, SQL: m.SQL, Remedy: m.Remedy, Err: err}
}

func (errorFactory) Sentinel(err error) error {
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return nil
}

func (errorFactory) Log(ctx context.Context, logger *slog.Logger, e core.Event, times int64) {
	logEvent(ctx, logger, publicEvent(e), times)
}

// publicEvent converts an event for observers.
func publicEvent(e core.Event) Event {
	public := Event{
		Kind: EventKind(e.Kind), Query: e.Query, Sent: e.Sent, Tables: e.Tables,
		Reason: e.Reason, Err: e.Err, Duration: e.Duration, Dialect: e.Dialect, Cache: CacheUse(e.Cache),
	}
	if len(e.Tokens) > 0 {
		public.Tokens = make([]Token, len(e.Tokens))
		for i, t := range e.Tokens {
			public.Tokens[i] = Token(t)
		}
	}
	if len(public.Tables) == 0 {
		if table := tableOf(e.Err); table != "" {
			public.Tables = []string{table}
		}
	}
	return public
}

// about returns a refusal's attributes for the log: the table, the write's token or serial, and the database's value.
func about(err error) (attrs []slog.Attr) {
	var typed interface{ attrs() []slog.Attr }
	var inner interface{ About() (table, token string) }
	switch {
	case errors.As(err, &typed):
		return typed.attrs()
	case errors.As(err, &inner):
		table, token := inner.About()
		attrs = tableAttr(table)
		if token != "" {
			attrs = append(attrs, slog.String("token", token))
		}
	}
	return attrs
}

// about returns the attributes of the event's error, with the event's table if the error names none.
func (e Event) about() []slog.Attr {
	attrs := about(e.Err)
	if len(e.Tables) == 1 && !slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == "table" }) {
		attrs = append(tableAttr(e.Tables[0]), attrs...)
	}
	return attrs
}

// tableOf returns the table of a refusal; empty if unknown.
func tableOf(err error) string {
	for _, a := range about(err) {
		if a.Key == "table" {
			return a.Value.String()
		}
	}
	return ""
}

func (e *StaleError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()),
		slog.Int64("current", e.Current)}
}

func (e *NotIssuedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()),
		slog.Int64("current", e.Current)}
}

func (e *ConflictError) attrs() []slog.Attr {
	attrs := tableAttr(e.Table)
	if !e.claim {
		attrs = append(attrs, slog.Int64("serial", e.Expected))
	}
	return append(attrs, slog.Int64("current", e.Current))
}

func (e *LockedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("current", e.By)}
}

func (e *UnguardableError) attrs() []slog.Attr { return tableAttr(e.Table) }

func tableAttr(table string) []slog.Attr {
	if table == "" {
		return nil
	}
	return []slog.Attr{slog.String("table", table)}
}
