package main

import (
	"database/sql"

	"github.com/XSAM/otelsql"
	"github.com/ngrok/sqlmw"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// viaSqlmw is sqlmw around the driver, with an interceptor that does nothing.
func viaSqlmw(t target, dsn string) (*sql.DB, error) {
	plain, err := bare(t, dsn)
	if err != nil {
		return nil, err
	}
	defer plain.Close() // which has opened no connection
	return sql.OpenDB(dsnConnector{sqlmw.Driver(plain.Driver(), sqlmw.NullInterceptor{}), dsn}), nil
}

// otelOptions makes otelsql discard its spans and metrics.
var otelOptions = []otelsql.Option{
	otelsql.WithTracerProvider(tracenoop.NewTracerProvider()),
	otelsql.WithMeterProvider(metricnoop.NewMeterProvider()),
}

// viaOtelsql is otelsql around the driver.
func viaOtelsql(t target, dsn string) (*sql.DB, error) {
	return otelsql.Open(t.driver, dsn, otelOptions...)
}
