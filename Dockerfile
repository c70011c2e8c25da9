# syntax=docker/dockerfile:1
# outboxd in an image of its own: one static binary, CA certificates and time zones; no shell, no root.
#
#   docker build --tag outboxd-relay .
#
# A destination that runs a local program wants that program in the image. One that is a single static file:
#
#   FROM outboxd-relay
#   COPY --chmod=0555 charge /usr/local/bin/charge
#
# One that needs an interpreter: take the interpreter's image, and copy outboxd into it.
#
#   FROM php:8.4-cli
#   COPY --from=outboxd-relay /usr/local/bin/outboxd /usr/local/bin/outboxd
#   COPY charge.php /srv/charge.php
#   USER 65532:65532
#   ENTRYPOINT ["/usr/local/bin/outboxd"]
#   CMD ["run"]
#
# Run either by `docker run --init`, or with tini before outboxd: docs/deploying.md says why.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -o /outboxd ./cmd/outboxd

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /outboxd /usr/local/bin/outboxd
# By number: Kubernetes can tell that it is not root only then.
USER 65532:65532
EXPOSE 9465
ENTRYPOINT ["/usr/local/bin/outboxd"]
CMD ["run"]
