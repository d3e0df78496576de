-- Sample data for the JDBC source. PostgreSQL runs this once, when it creates the database.
CREATE TABLE customers (
    id         serial PRIMARY KEY,
    name       text NOT NULL,
    city       text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE orders (
    id          serial PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers,
    amount      numeric(10, 2) NOT NULL,
    status      text NOT NULL DEFAULT 'new',
    updated_at  timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX orders_updated_at ON orders (updated_at, id);

INSERT INTO customers (name, city)
SELECT 'customer ' || n, (ARRAY['Bern', 'Graz', 'Leeds', 'Lyon', 'Turku'])[1 + n % 5]
FROM generate_series(1, 100) AS n;

INSERT INTO orders (customer_id, amount, status, updated_at)
SELECT 1 + n % 100, (n * 37 % 50000) / 100.0, (ARRAY['new', 'paid', 'sent'])[1 + n % 3], now() - (10000 - n) * interval '1 minute'
FROM generate_series(1, 10000) AS n;
