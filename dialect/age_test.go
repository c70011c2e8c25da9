package dialect

import (
	"encoding/json"
	"testing"
	"time"
)

func TestAgeInJSON(t *testing.T) {
	t.Parallel()
	for age, want := range map[Age]string{0: "0", Age(1500 * time.Millisecond): "1.5", Age(time.Hour): "3600"} {
		if got, err := json.Marshal(age); err != nil || string(got) != want {
			t.Errorf("%s is %s in JSON, want %s", age, got, want)
		}
	}
}
