// franz-go at secured listeners. usage: secured TOPIC WAYS_JSON; each way has `brokers`, and `tls`
// (paths of files) or `mechanism` with what it shows, or both. Writes a record each way, reads it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type files struct{ CA, Cert, Key string }

type way struct {
	Brokers                          string
	TLS                              *files
	Mechanism, User, Password, Token string
}

func main() {
	var ways []way
	if err := json.Unmarshal([]byte(os.Args[2]), &ways); err != nil {
		end(err)
	}
	for number, one := range ways {
		value := fmt.Sprintf("value %d", number)
		if err := roundTrip(os.Args[1], one, value); err != nil {
			end(fmt.Errorf("way %d: %w", number, err))
		}
		fmt.Println(value)
	}
}

func end(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func roundTrip(topic string, one way, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := []kgo.Opt{kgo.SeedBrokers(one.Brokers), kgo.ConsumeTopics(topic)}
	if one.TLS != nil {
		config, err := one.TLS.config()
		if err != nil {
			return err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if one.Mechanism != "" {
		options = append(options, kgo.SASL(one.mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	record := &kgo.Record{Topic: topic, Value: []byte(value)}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return err
	}
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, got := range fetches.Records() {
			if string(got.Value) == value {
				return nil
			}
		}
	}
}

func (f files) config() (*tls.Config, error) {
	authority, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", f.CA)
	}
	config := &tls.Config{RootCAs: roots}
	if f.Cert != "" {
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func (w way) mechanism() sasl.Mechanism {
	switch w.Mechanism {
	case "PLAIN":
		return plain.Auth{User: w.User, Pass: w.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: w.User, Pass: w.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: w.User, Pass: w.Password}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: w.Token}.AsMechanism()
	}
}
