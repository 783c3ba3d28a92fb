package main

import (
	"context"
	"log"
	"time"
)

func code(ctx context.Context) {
	// goes here
}
