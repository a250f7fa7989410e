// dashboard says what is wrong with a dashboard by Grafana's own schema, panels and queries included: unknown, missing and mistyped fields.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile(os.Args[1])
	var found dashboard.Dashboard
	if err == nil {
		tell(found.UnmarshalJSONStrict(text))
		err = found.Validate()
	}
	tell(err)
}

// tell ends the program with what is wrong. Where nothing is, the schema may give a list of no faults.
func tell(err error) {
	if err != nil && err.Error() != "" {
		fmt.Println(err)
		os.Exit(1)
	}
}
