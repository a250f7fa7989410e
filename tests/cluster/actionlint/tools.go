//go:build tools

// Package actionlint pins the version of the program that checks workflows.
package actionlint

import _ "github.com/rhysd/actionlint"
