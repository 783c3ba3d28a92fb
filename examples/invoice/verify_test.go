package main

import (
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/verified"
)

func TestVerified(t *testing.T) {
	url, db := newServer(t)
	newClient(t, url, "ada").post("/invoices/1/edit", "", 200)
	verified.Nothing(t, db)
}
