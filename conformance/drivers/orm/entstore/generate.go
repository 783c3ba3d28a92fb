package entstore

//go:generate go run -mod=mod entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/upsert --target . ./schema
