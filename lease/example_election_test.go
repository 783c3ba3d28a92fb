package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// A program that writes without contexts. While the program leads, its writes have the lease's token; otherwise writes
// fail before they are sent.
func ExampleElection() {
	elected, lost := make(chan bool), make(chan bool)
	election, err := lease.NewElection("books", lease.Callbacks{
		Elected: func(ctx context.Context) {
			elected <- true
			<-ctx.Done() // and its work is to end
			lost <- true
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	db := openShop(sqlfence.WithTokenSource(election.Tokens)) // sqlfence.Open with these options
	defer db.Close()
	leases, err := lease.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := leases.Setup(context.Background()); err != nil { // once, or by your own migration
		log.Fatal(err)
	}

	const insert = "INSERT INTO books (id, price) VALUES ($1, 10)"
	_, err = db.Exec(insert, 1)
	fmt.Println("a candidate writes:", err)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- election.Run(ctx, leases) }()
	<-elected
	_, err = db.Exec(insert, 2)
	fmt.Println("the leader writes:", err, election.IsLeader())

	stop()
	<-lost
	fmt.Println("Run:", <-ended)
	_, err = db.Exec(insert, 3)
	fmt.Println("later:", errors.Is(err, sqlfence.ErrNoFence), errors.Is(err, lease.ErrNotLeader))
	// Output:
	// a candidate writes: sqlfence: no fencing token: table "books": the token source: lease: not the leader: key "books"
	// the leader writes: <nil> true
	// Run: <nil>
	// later: true true
}
