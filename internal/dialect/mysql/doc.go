// Package mysql is all that sqlfence knows of MySQL and MariaDB, a file a subject. Other databases have the same files.
package mysql
