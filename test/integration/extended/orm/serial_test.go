package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm/clause"

	"github.com/sqlfence/sqlfence"
	sqlcpg "github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/postgres"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Serial and WithSerial, tested with the statements that ORMs send.

// An ormSerialShop is an ormShop whose books have a serial.
type ormSerialShop struct {
	*ormShop
	rows *harness.Shop // reads and compares the rows
	db   *ormDB
}

func newORMSerialShop(t *testing.T, b harness.Base) ormSerialShop {
	t.Helper()
	s := newORMShop(t, b)
	s.exec(t, "ALTER TABLE books ADD COLUMN serial bigint")
	db := &ormDB{s.Base.Fenced(t, s.source, harness.Books(sqlfence.Serial("serial"))), b, s.source}
	looking := b
	looking.AsWritten = false
	rows := &harness.Shop{Setting: harness.Setting{Base: looking, Level: sql.LevelDefault}, Source: s.source, Plain: looking.Raw(t, s.source), DB: db.DB}
	return ormSerialShop{s, rows, db}
}

// The rows of an ormSerialShop at the start, and after the third book was deleted.
const (
	ormVersions     = "1:10#1 2:20#1 3:30#7"
	ormVersionsGone = "1:10#1 2:20#1"
)

func (s ormSerialShop) version(t *testing.T) {
	t.Helper()
	s.reset(t, 0)
	s.exec(t, "UPDATE books SET serial = CASE WHEN id = 3 THEN 7 ELSE 1 END")
}

// eachORMStore runs test for every ORM on every base.
func eachORMStore(t *testing.T, test func(t *testing.T, s ormSerialShop, orm ormStore)) {
	t.Helper()
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		for _, o := range ormStores {
			t.Run(o.name, func(t *testing.T) {
				s.version(t)
				test(t, s, o.open(t, s.db))
			})
		}
	})
}

// An ormWrite writes the third book; want holds the rows afterwards.
type ormWrite struct {
	name string
	run  func(ctx context.Context) error
	want string
}

// writes returns the ORM's writes that WithSerial can compare.
func (s ormSerialShop) writes(orm ormStore) []ormWrite {
	var all []ormWrite
	for _, u := range orm.updates {
		all = append(all, ormWrite{u.name, func(ctx context.Context) error { return u.run(ctx, 3, 31) }, "1:10#1 2:20#1 3:31#8"})
	}
	if s.db.postgres() && orm.upsertAlso != nil {
		all = append(all, ormWrite{"upsert", func(ctx context.Context) error { return orm.upsertAlso(ctx, 3, 31) }, "1:10#1 2:20#1 3:31#8"})
	}
	if orm.deleteRead != nil {
		all = append(all, ormWrite{"delete that reads", func(ctx context.Context) error { return orm.deleteRead(ctx, 3) }, ormVersionsGone})
	}
	return append(all,
		ormWrite{"delete", func(ctx context.Context) error { return orm.delete(ctx, 3) }, ormVersionsGone},
		ormWrite{"soft delete", func(ctx context.Context) error { return orm.softDelete(ctx, 3) }, "1:10#1 2:20#1 3:30#8"})
}

func TestORMSerialCounts(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		all := append(s.writes(orm),
			ormWrite{"create", func(ctx context.Context) error { return orm.create(ctx, 4, 40) }, ormVersions + " 4:40#1"},
			ormWrite{"bulk", orm.bulk, "1:11#2 2:21#2 3:31#8"})
		if orm.joined != nil {
			all = append(all, ormWrite{"joined", func(ctx context.Context) error { return orm.joined(ctx, 3, 31) }, "1:10#1 2:20#1 3:31#8"})
		}
		for _, upsert := range []ormSetter{orm.upsert, orm.upsertAlso} {
			if upsert != nil {
				all = append(all,
					ormWrite{"upsert", func(ctx context.Context) error { return upsert(ctx, 3, 31) }, "1:10#1 2:20#1 3:31#8"},
					ormWrite{"upsert of a new one", func(ctx context.Context) error { return upsert(ctx, 4, 40) }, ormVersions + " 4:40#1"})
			}
		}
		for _, w := range all {
			t.Run(w.name, func(t *testing.T) {
				s.version(t)
				if err := w.run(t.Context()); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, w.want)
			})
		}
	})
}

func TestORMSerialCompares(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		for _, w := range s.writes(orm) {
			t.Run(w.name, func(t *testing.T) {
				s.version(t)
				if err := w.run(harness.WithSerial(t, 7)); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, w.want)

				s.version(t)
				for _, expected := range []int64{6, 8, 0} {
					harness.WantConflict(t, w.run(harness.WithSerial(t, expected)), expected, 7)
				}
				s.rows.WantVersions(t, ormVersions)

				// A write of a deleted row must return ErrGone. In particular gorm's Save must not insert the row.
				s.exec(t, "DELETE FROM books WHERE id = 3")
				err := w.run(harness.WithSerial(t, 7))
				harness.WantError(t, err, sqlfence.ErrGone)
				if errors.Is(err, sqlfence.ErrConflict) {
					t.Errorf("%v is a conflict, too", err)
				}
				s.rows.WantVersions(t, ormVersionsGone)
			})
		}

		// WithSerial compares one version with all rows that a statement writes. It ignores inserted rows.
		s.version(t)
		harness.WantConflict(t, orm.bulk(harness.WithSerial(t, 7)), 7, 1)
		s.rows.WantVersions(t, ormVersions)
		if err := orm.create(harness.WithSerial(t, 7), 4, 40); err != nil {
			t.Error(err)
		}
		s.rows.WantVersions(t, ormVersions+" 4:40#1")
	})
}

// Three kinds of statement are refused under WithSerial: an upsert with RETURNING, which ORMs add by default; on SQLite
// and MySQL every upsert; and an UPDATE that counts the rows of joined tables.
func TestORMSerialRefused(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		refused := []ormSetter{orm.upsert, orm.joined}
		if !s.db.postgres() {
			refused = append(refused, orm.upsertAlso)
		}
		for _, write := range refused {
			if write == nil {
				continue
			}
			for _, id := range []int64{3, 4} {
				harness.WantError(t, write(harness.WithSerial(t, 7), id, 31), sqlfence.ErrUnguardable)
			}
			s.rows.WantVersions(t, ormVersions)
		}
	})
}

func TestORMSerialTransaction(t *testing.T) {
	eachORMStore(t, func(t *testing.T, s ormSerialShop, orm ormStore) {
		for _, u := range orm.updates {
			t.Run(u.name, func(t *testing.T) {
				// update runs u's update within the transaction.
				update := func(ctx context.Context, tx ormStore, serial, id, price int64) error {
					for _, in := range tx.updates {
						if in.name == u.name {
							return in.run(sqlfence.WithSerial(ctx, serial), id, price)
						}
					}
					return errors.New("no such update in a transaction")
				}

				// A second change of the row in the transaction must present the version that the first change has
				// written.
				s.version(t)
				if err := orm.inTx(t.Context(), func(ctx context.Context, tx ormStore) error {
					return errors.Join(update(ctx, tx, 7, 3, 31), update(ctx, tx, 8, 3, 32), tx.delete(sqlfence.WithSerial(ctx, 1), 2))
				}); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, "1:10#1 3:32#9")

				// A conflict ends the transaction and rolls its earlier writes back.
				s.version(t)
				harness.WantConflict(t, orm.inTx(t.Context(), func(ctx context.Context, tx ormStore) error {
					if err := update(ctx, tx, 1, 1, 11); err != nil {
						return err
					}
					return update(ctx, tx, 6, 3, 31)
				}), 6, 7)
				s.rows.WantVersions(t, ormVersions)
				harness.WantConflict(t, orm.inTx(t.Context(), func(ctx context.Context, tx ormStore) error {
					if err := update(ctx, tx, 7, 3, 31); err != nil {
						return err
					}
					return update(ctx, tx, 7, 3, 32)
				}), 7, 8)
				s.rows.WantVersions(t, ormVersions)

				// A missing row causes no error in the database, so the transaction may continue after ErrGone.
				s.exec(t, "DELETE FROM books WHERE id = 3")
				if err := orm.inTx(t.Context(), func(ctx context.Context, tx ormStore) error {
					harness.WantError(t, update(ctx, tx, 7, 3, 31), sqlfence.ErrGone)
					return update(ctx, tx, 1, 1, 11)
				}); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, "1:11#2 2:20#1")
			})
		}
	})
}

// A model that has the serial as an ordinary field assigns it in each update. Under WithSerial the update is refused.
// Without WithSerial it is refused unless the assigned serial is higher than the row's, so that a change made since the
// record was read isn't lost.
func TestORMSerialInTheModel(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		g, bn, x := openGorm(t, s.db), openBun(s.db), openSQLX(s.db)
		for _, w := range []struct {
			name string
			run  func(ctx context.Context) error
		}{
			{"gorm", func(ctx context.Context) error {
				return g.WithContext(ctx).Save(&gormVersioning{3, "i3", "three", 31, 7}).Error
			}},
			{"bun", func(ctx context.Context) error {
				_, err := bn.NewUpdate().Model(&bunVersioning{ID: 3, ISBN: "i3", Price: 31, Serial: 7}).WherePK().Exec(ctx)
				return err
			}},
			{"sqlx", func(ctx context.Context) error {
				_, err := x.NamedExecContext(ctx, "UPDATE books SET price = :price, serial = :serial WHERE id = :id",
					sqlxVersioned{sqlxBook{ID: 3, Price: 31}, 7})
				return err
			}},
		} {
			t.Run(w.name, func(t *testing.T) {
				s.version(t)
				harness.WantError(t, w.run(harness.WithSerial(t, 7)), sqlfence.ErrUnguardable)
				s.rows.WantVersions(t, ormVersions)
				harness.WantAssigned(t, w.run(t.Context()), 7)
				s.rows.WantVersions(t, ormVersions)
				s.exec(t, "UPDATE books SET price = 32, serial = 8 WHERE id = 3")
				harness.WantAssigned(t, w.run(t.Context()), 8)
				s.rows.WantVersions(t, "1:10#1 2:20#1 3:32#8")
				s.exec(t, "UPDATE books SET price = 32, serial = 6 WHERE id = 3")
				if err := w.run(t.Context()); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, "1:10#1 2:20#1 3:31#7")
			})
		}
	})
}

// WithSerial holds the version of one row. If an ORM's call also writes associated rows, the other rows are compared
// with the same version, or the statement is refused.
func TestORMSerialAssociations(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		t.Run("gorm", func(t *testing.T) {
			s.version(t)
			g := openGorm(t, s.db)
			var one gormBook
			if err := g.WithContext(t.Context()).Preload("Sequels").First(&one, 1).Error; err != nil {
				t.Fatal(err)
			}
			one.Price = 11
			harness.WantError(t, g.WithContext(harness.WithSerial(t, 1)).Save(&one).Error, sqlfence.ErrUnguardable)
			s.rows.WantVersions(t, ormVersions)
			if err := g.WithContext(harness.WithSerial(t, 1)).Omit(clause.Associations).Save(&one).Error; err != nil {
				t.Error(err)
			}
			s.rows.WantVersions(t, "1:11#2 2:20#1 3:30#7")
		})
		t.Run("ent", func(t *testing.T) {
			s.version(t)
			_, err := openEnt(s.db).Book.UpdateOneID(1).SetPrice(11).AddSequelIDs(3).Save(harness.WithSerial(t, 1))
			harness.WantConflict(t, err, 1, 7)
			s.rows.WantVersions(t, ormVersions)
		})
	})
}

// The ORMs read the row's version into their records. Where the database has RETURNING, an update returns the new
// version.
func TestORMSerialIsRead(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		returning := !s.db.mysql()
		want := func(t *testing.T, serial *int64, want int64, err error) {
			t.Helper()
			if err != nil || *serial != want {
				t.Errorf("serial %d, %v; want %d", *serial, err, want)
			}
		}
		t.Run("gorm", func(t *testing.T) {
			s.version(t)
			g := openGorm(t, s.db)
			var r gormVersioned
			want(t, &r.Serial, 7, g.WithContext(t.Context()).First(&r, 3).Error)
			want(t, &r.Serial, 7, g.WithContext(harness.WithSerial(t, 7)).Model(&r).Update("price", 31).Error)
			if !returning {
				return
			}
			want(t, &r.Serial, 9, g.WithContext(harness.WithSerial(t, 8)).Model(&r).Clauses(clause.Returning{}).Update("price", 32).Error)
		})
		t.Run("bun", func(t *testing.T) {
			s.version(t)
			bn := openBun(s.db)
			r := bunVersioned{bunBook: bunBook{ID: 3}}
			want(t, &r.Serial, 0, bn.NewSelect().Model(&r).WherePK().Scan(t.Context())) // doesn't select the serial
			want(t, &r.Serial, 7, bn.NewSelect().Model(&r).ColumnExpr("?TableColumns, serial").WherePK().Scan(t.Context()))
			if !returning {
				return
			}
			_, err := bn.NewUpdate().Model(&r).WherePK().Returning("serial").Exec(harness.WithSerial(t, 7))
			want(t, &r.Serial, 8, err)
		})
		t.Run("sqlx", func(t *testing.T) {
			s.version(t)
			x := openSQLX(s.db)
			var r sqlxVersioned
			want(t, &r.Serial, 7, x.GetContext(t.Context(), &r, "SELECT * FROM books WHERE id = 3"))
			if !returning {
				return
			}
			want(t, &r.Serial, 8, x.GetContext(harness.WithSerial(t, 7), &r, "UPDATE books SET price = 31 WHERE id = 3 RETURNING serial"))
		})
	})
}

// With Serial on a column that the models write, here the price, each write and upsert of the ORMs must increase it.
func TestORMSerialIsAColumnOfTheModel(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		s := newORMSerialShop(t, b)
		db := &ormDB{b.Fenced(t, s.source, harness.Books(sqlfence.Serial("price"))), b, s.source}
		check := func(name string, set ormSetter) {
			t.Run(name, func(t *testing.T) {
				s.version(t)
				for _, price := range []int64{30, 29, -1} {
					harness.WantAssigned(t, set(t.Context(), 3, price), 30)
				}
				s.rows.WantVersions(t, ormVersions)
				if err := set(t.Context(), 3, 31); err != nil {
					t.Error(err)
				}
				s.rows.WantVersions(t, "1:10#1 2:20#1 3:31#7")
			})
		}
		for _, o := range ormStores {
			orm := o.open(t, db)
			for _, u := range orm.updates {
				check(o.name+", "+u.name, u.run)
			}
			for _, upsert := range []ormSetter{orm.upsert, orm.upsertAlso} {
				if upsert != nil {
					check(o.name+", upsert", upsert)
				}
			}
		}
		c := openSQLC(db)
		check("sqlc", func(ctx context.Context, id, price int64) error {
			_, err := c.queries(c.db).SetPrice(ctx, sqlcpg.SetPriceParams{Price: price, ID: id})
			return err
		})
		check("sqlc, prepared", func(ctx context.Context, id, price int64) error {
			q, err := c.prepare(ctx, c.db)
			if err != nil {
				return err
			}
			_, err = q.SetPrice(ctx, sqlcpg.SetPriceParams{Price: price, ID: id})
			return errors.Join(err, q.Close())
		})
	})
}
