// Package fencegocron runs a job of gocron in one process at a time, by a lease of package lease, and gives the job the
// lease's fencing token.
//
//	locker := fencegocron.NewLocker(leases, lease.MinHold(55*time.Minute))
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour),
//		locker.Task("report", func(ctx context.Context) error {
//			_, err := db.ExecContext(ctx, "UPDATE reports SET ...") // ErrStale if another process has taken over
//			return err
//		}), gocron.WithName("report"))
//
// A lock alone doesn't keep a process that was paused from writing when it wakes up. The token does, on tables that
// are registered with the job's name as their [sqlfence.Resource]. With an [Elector] one process runs all jobs.
//
// If another process holds a job, gocron skips the job, and calls an AfterLockError listener with an error that is
// [lease.ErrHeld]. If the fence refuses a job's write, the job returns an error that is [sqlfence.ErrStale]. gocron
// counts this error as a failure, without a retry: another process runs the job.
package fencegocron
