// Package fencekubernetes fences the writes of the leader of client-go's leader election, in two ways.
//
// Where the election stays in Kubernetes, in an object of kind Lease, [WithLeader] makes a token of it:
//
//	OnStartedLeading: func(ctx context.Context) {
//		ctx, err := fencekubernetes.WithLeader(ctx, store, "books", lock)
//		_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // ErrStale if another leads by now
//	}
//
// Where the database can hold the election itself, [Lock] puts it on a lease of package lease: client-go and
// controller-runtime take it as their resourcelock.Interface, and the leader's writes need no context:
//
//	lock, err := fencekubernetes.NewLock("books", identity)
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("books"), sqlfence.WithTokenSource(lock.Tokens))
//	leases, err := lease.New(db)
//	lock.Use(leases)
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, …})
//
// In both ways an identity must belong to one process, such as the pod's name followed by a random text, as client-go
// advises. Two processes with one identity count as one holder.
package fencekubernetes
