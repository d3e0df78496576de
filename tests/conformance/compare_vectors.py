# ruff: noqa
# fmt: off
"""Comparator for the vectors (see FORMAT.md).  check(vector, actual) -> list of differences (empty = pass).
level: 'outcome'  success/error + records/data/bytes (errors: only that there is one, at the same stage)
       'class'    + simple name of the exception class
       'message'  + message text where message_kind == 'kafka'"""
import json, struct, base64
from decimal import Decimal

def f32(x): return struct.pack('>f', x) if abs(x) < 3.5e38 else x
def num(a, b, single=False):
    if isinstance(a, bool) or isinstance(b, bool): return a is b
    if isinstance(a, str) or isinstance(b, str): return a == b            # "NaN", "Infinity", "-Infinity"
    if single:
        try: return struct.pack('>f', a) == struct.pack('>f', b) or a == b
        except OverflowError: return a == b
    if isinstance(a, float) or isinstance(b, float): return float(a) == float(b)
    return a == b
def loose(a, b):
    if isinstance(a, dict) and isinstance(b, dict): return a.keys() == b.keys() and all(loose(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list): return len(a) == len(b) and all(map(loose, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)): return num(a, b)
    return type(a) is type(b) and a == b
def payload(s, a, b):
    if a is None or b is None: return a is None and b is None
    if s is None: return loose(a, b)
    t = s['type']
    if t == 'float': return num(a, b, True)
    if t == 'struct' and isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(payload(f, a[f['field']], b[f['field']]) for f in s['fields'] if f['field'] in a)
    if t == 'array' and isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(payload(s['items'], x, y) for x, y in zip(a, b))
    if t == 'map' and isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(payload(s['values'], a[k], b[k]) for k in a)
    if t == 'map' and isinstance(a, list) and isinstance(b, list):        # pairs, any order
        k = lambda p: json.dumps(p[0], sort_keys=True)
        return len(a) == len(b) and all(payload(s['keys'], x[0], y[0]) and payload(s['values'], x[1], y[1]) for x, y in zip(sorted(a, key=k), sorted(b, key=k)))
    return loose(a, b)
def schema(a, b, path='schema'):
    if a is None or b is None: return [] if a is b else ['%s: %s vs %s' % (path, a and a['type'], b and b['type'])]
    d = []
    for k in ('type', 'name', 'version', 'doc', 'field'):
        if a.get(k) != b.get(k): d.append('%s.%s: expected %r, got %r' % (path, k, a.get(k), b.get(k)))
    if bool(a.get('optional')) != bool(b.get('optional')): d.append('%s.optional: expected %r' % (path, a.get('optional')))
    if (a.get('parameters') or {}) != (b.get('parameters') or {}): d.append(path + '.parameters')
    if ('default' in a) != ('default' in b) or ('default' in a and not payload(a, a['default'], b['default'])): d.append(path + '.default')
    if d: return d
    for k in ('items', 'keys', 'values'):
        if k in a or k in b: d += schema(a.get(k), b.get(k), path + '.' + k)
    if a['type'] == 'struct':
        if [f['field'] for f in a['fields']] != [f['field'] for f in b['fields']]: return d + [path + ': field names/order']
        for x, y in zip(a['fields'], b['fields']): d += schema(x, y, path + '.' + x['field'])
    return d
def typed(a, b):
    if a is None or b is None: return a is b
    if a['t'] != b['t']: return False
    t, x, y = a['t'], a['v'], b['v']
    if t == 'array': return len(x) == len(y) and all(map(typed, x, y))
    if t in ('map', 'struct'):
        k = (lambda p: json.dumps(p[0], sort_keys=True)) if t == 'map' else (lambda p: 0)
        x, y = sorted(x, key=k), sorted(y, key=k)
        return len(x) == len(y) and all((typed(p[0], q[0]) if t == 'map' else p[0] == q[0]) and typed(p[1], q[1]) for p, q in zip(x, y))
    if t in ('float32', 'float64'): return num(x, y, t == 'float32')
    if t == 'decimal': return Decimal(x).as_tuple() == Decimal(y).as_tuple()
    return x == y
def data(a, b, name='payload', path=''):
    if a is None or b is None: return [] if a is b else [path + ': null vs non-null']
    d = schema(a.get('schema'), b.get('schema'), path + '.schema')
    if d: return d
    if 'typed' in a and 'typed' in b: return [] if typed(a['typed'], b['typed']) else ['%s.typed: expected %s got %s' % (path, json.dumps(a['typed'])[:300], json.dumps(b['typed'])[:300])]
    return [] if payload(a['schema'], a.get(name), b.get(name)) else ['%s.%s: expected %s got %s' % (path, name, json.dumps(a.get(name))[:300], json.dumps(b.get(name))[:300])]
def check(vector, actual, level='outcome'):
    e = vector['expect']
    if 'error' in e or 'error' in actual:
        if ('error' in e) != ('error' in actual): return ['expected %s, got %s' % (('error ' + str(e['error']['message'])[:200]) if 'error' in e else 'success', ('error ' + str(actual['error'].get('message'))[:200]) if 'error' in actual else 'success')]
        x, y = e['error'], actual['error']
        if x['stage'] != y.get('stage', x['stage']): return ['stage: expected %s' % x['stage']]
        if level != 'outcome' and x['class'].split('.')[-1] != str(y.get('class')).split('.')[-1]: return ['class: expected %s got %s' % (x['class'], y.get('class'))]
        if level == 'message' and x['message_kind'] == 'kafka' and x['message'] != y.get('message'): return ['message: expected %r got %r' % (x['message'], y.get('message'))]
        return []
    d = []
    if 'records' in e:
        if len(e['records']) != len(actual['records']): return ['records: expected %d got %d' % (len(e['records']), len(actual['records']))]
        for a, b in zip(e['records'], actual['records']):
            for k in ('side', 'topic', 'partition', 'timestamp', 'offset'):
                if a.get(k) != b.get(k): d.append('%s: expected %r got %r' % (k, a.get(k), b.get(k)))
            d += data(a['key'], b['key'], path='key') + data(a['value'], b['value'], path='value')
            if [h['key'] for h in a['headers']] != [h['key'] for h in b['headers']]: d.append('header keys: expected %s got %s' % ([h['key'] for h in a['headers']], [h['key'] for h in b['headers']]))
            else:
                for i, (g, h) in enumerate(zip(a['headers'], b['headers'])): d += data(g, h, 'value', 'headers[%d]' % i)
    elif 'data' in e: d += data(e['data'], actual['data'], path='data')
    elif 'bytes' in e:
        if e['bytes'] != actual['bytes']:
            if vector.get('class', '').endswith('JsonConverter') and e['bytes'] is not None and actual['bytes'] is not None:
                x, y = (json.loads(base64.b64decode(v), parse_float=Decimal) for v in (e['bytes'], actual['bytes']))
                n = lambda v: {k: n(w) for k, w in v.items()} if isinstance(v, dict) else [n(w) for w in v] if isinstance(v, list) else (float(v) if isinstance(v, Decimal) else v)
                if not loose(n(x), n(y)): d.append('json: expected %s got %s' % (json.dumps(x, default=str)[:300], json.dumps(y, default=str)[:300]))
            else: d.append('bytes: expected %r got %r' % (e.get('text', e['bytes']), actual.get('text', actual['bytes'])))
    elif 'result' in e:
        a, b = e['result'], actual['result']
        for k in ('name', 'error_count'):
            if a[k] != b[k]: d.append('%s: expected %r got %r' % (k, a[k], b[k]))
        g = lambda r: {(c.get('value') or c)['name']: (c.get('value') or c) for c in map(lambda c: c if isinstance(c.get('value'), dict) else {'value': c}, r['configs'])}
        x, y = g(a), g(b)
        if set(x) != set(y): d.append('config names: missing %s extra %s' % (sorted(set(x) - set(y)), sorted(set(y) - set(x))))
        for k in set(x) & set(y):
            if x[k].get('value') != y[k].get('value'): d.append('%s.value: expected %r got %r' % (k, x[k].get('value'), y[k].get('value')))
            if bool(x[k]['errors']) != bool(y[k]['errors']) or (level == 'message' and x[k]['errors'] != y[k]['errors']): d.append('%s.errors: expected %r got %r' % (k, x[k]['errors'], y[k]['errors']))
    elif 'config_keys' in e:
        f = lambda l: {c['name']: (c['type'], c['required'], c['default_value'], c['importance']) for c in l}
        if f(e['config_keys']) != f(actual['config_keys']): d.append('config_keys differ')
    return d
if __name__ == '__main__':   # compare.py vectors.jsonl answers.jsonl [level]   (answers: one JSON object a line with the vector's id)
    import sys, collections
    vs = [json.loads(l) for l in open(sys.argv[1], encoding='utf-8').read().split('\n') if l]
    an = {a['id']: a for a in (json.loads(l) for l in open(sys.argv[2], encoding='utf-8').read().split('\n') if l)}
    lv = sys.argv[3] if len(sys.argv) > 3 else 'outcome'
    ok, tot = collections.Counter(), collections.Counter()
    for v in vs:
        tot[v['category']] += 1
        d = check(v, an[v['id']], lv) if v['id'] in an else ['no answer']
        if d: print('FAIL', v['id'], '; '.join(d)[:400])
        else: ok[v['category']] += 1
    for c in sorted(tot): print('%-24s %d/%d' % (c, ok[c], tot[c]))
    print('%-24s %d/%d' % ('TOTAL', sum(ok.values()), sum(tot.values())))
