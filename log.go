package sqlfence

import (
	"context"
	"errors"
	"log/slog"
)

// log writes an event to the log.
func (s *settings) log(ctx context.Context, logger *slog.Logger, e Event) {
	level := slog.LevelInfo
	switch e.Kind {
	case Refused, WouldRefuse:
		level = slog.LevelWarn
	case Unfenced:
		level = slog.LevelDebug
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("query", e.Query)}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
		attrs = append(attrs, refusalAttrs(e.Err)...)
		if verb := e.Verb(); verb != "" {
			attrs = append(attrs, slog.String("statement", verb))
		}
	}
	logger.LogAttrs(ctx, level, "sqlfence: "+e.Kind.String(), attrs...)
}

// refusalAttrs returns what a refusal is about: the table, what the write carried, and
// what the database holds.
func refusalAttrs(err error) (attrs []slog.Attr) {
	var about interface{ attrs() []slog.Attr }
	if errors.As(err, &about) {
		attrs = about.attrs()
	}
	return attrs
}

// tableOf returns the table that a refusal is about; empty if that is unknown.
func tableOf(err error) string {
	for _, a := range refusalAttrs(err) {
		if a.Key == "table" {
			return a.Value.String()
		}
	}
	return ""
}

func (e *StaleError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()), slog.Int64("current", e.Current)}
}

func (e *NotIssuedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()), slog.Int64("current", e.Current)}
}

func (e *ConflictError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.Int64("serial", e.Expected), slog.Int64("current", e.Current)}
}

func (e *LockedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("current", e.By)}
}

func (e *UnguardableError) attrs() []slog.Attr { return tableAttr(e.Table) }
func (e *ColumnError) attrs() []slog.Attr      { return tableAttr(e.Table) }
func (e *tokenError) attrs() []slog.Attr       { return tableAttr(e.table) }

func (e *sourceError) attrs() []slog.Attr { return tableAttr(e.table) }

func (e *refusal) attrs() []slog.Attr {
	attrs := tableAttr(e.table)
	if e.token.Name != "" {
		attrs = append(attrs, slog.String("token", e.token.String()))
	}
	return attrs
}

func tableAttr(table string) []slog.Attr {
	if table == "" {
		return nil
	}
	return []slog.Attr{slog.String("table", table)}
}
