package entstore

//go:generate env GOWORK=off GOFLAGS=-mod=mod go run entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/upsert --target . ./schema
