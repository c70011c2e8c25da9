// Package mysql is the database of MySQL 8.0.17 and later and of MariaDB 10.6 and later. Where the two differ, a comment
// that only one of them reads makes the difference in the SQL, /*!80017 … */ for MySQL and /*M!100600 … */ for MariaDB; the
// code knows them apart only to say what it found.
package mysql
