// What is used of the Thrift 2 interface of Apache HBase (2.x and 3.x). Numbers, types and names of fields are HBase's.

struct TTimeRange { 1: required i64 minStamp, 2: required i64 maxStamp }
struct TColumn { 1: required binary family, 2: optional binary qualifier, 3: optional i64 timestamp }
struct TColumnValue { 1: required binary family, 2: required binary qualifier, 3: required binary value, 4: optional i64 timestamp }
struct TResult { 1: optional binary row, 2: required list<TColumnValue> columnValues }

enum TDeleteType { DELETE_COLUMN = 0, DELETE_COLUMNS = 1, DELETE_FAMILY = 2, DELETE_FAMILY_VERSION = 3 }

struct TGet {
  1: required binary row,
  2: optional list<TColumn> columns,
  4: optional TTimeRange timeRange,
  5: optional i32 maxVersions
}
struct TPut { 1: required binary row, 2: required list<TColumnValue> columnValues, 3: optional i64 timestamp }
struct TDelete {
  1: required binary row,
  2: optional list<TColumn> columns,
  3: optional i64 timestamp,
  4: optional TDeleteType deleteType = 1
}
struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  3: optional list<TColumn> columns,
  4: optional i32 caching,
  5: optional i32 maxVersions = 1,
  6: optional TTimeRange timeRange,
  12: optional bool cacheBlocks,
  15: optional i32 limit
}

struct THRegionInfo {
  1: required i64 regionId,
  2: required binary tableName,
  3: optional binary startKey,
  4: optional binary endKey
}
struct TServerName { 1: required string hostName }
struct THRegionLocation { 1: required TServerName serverName, 2: required THRegionInfo regionInfo }

struct TTableName { 1: optional binary ns, 2: required binary qualifier }
struct TColumnFamilyDescriptor {
  1: required binary name,
  2: optional map<binary, binary> attributes,
  10: optional i32 maxVersions,
  13: optional i32 timeToLive
}
struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns
}

exception TIOError { 1: optional string message, 2: optional bool canRetry }
exception TIllegalArgument { 1: optional string message }

service THBaseService {
  list<TResult> getMultiple(1: required binary table, 2: required list<TGet> tgets) throws (1: TIOError io),
  void putMultiple(1: required binary table, 2: required list<TPut> tputs) throws (1: TIOError io),
  list<TDelete> deleteMultiple(1: required binary table, 2: required list<TDelete> tdeletes) throws (1: TIOError io),
  list<TResult> getScannerResults(1: required binary table, 2: required TScan tscan, 3: i32 numRows = 1)
    throws (1: TIOError io, 2: TIllegalArgument ia),
  list<THRegionLocation> getAllRegionLocations(1: required binary table) throws (1: TIOError io),
  TTableDescriptor getTableDescriptor(1: required TTableName table) throws (1: TIOError io),
  bool tableExists(1: TTableName tableName) throws (1: TIOError io),
  bool isTableEnabled(1: required TTableName tableName) throws (1: TIOError io),
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys) throws (1: TIOError io)
}
