// SPDX-License-Identifier: Apache-2.0
//
// The texts of replies, in chunks of 8 bytes, and what fetches one of them from memory: its first chunk is there four
// cycles after `start`.
module reply_text
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  text_t       measured,
    output logic [6:0]  size,      // of `measured`
    input  logic        start,
    input  logic        follows,   // with start: there is a text
    input  text_t       text,      // with start
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last
);
  localparam int TEXT_BITS = 512;
  // A text's bytes, the first one at the top, and its size.
  function automatic logic [TEXT_BITS+6:0] text_of(text_t t);
    logic [TEXT_BITS-1:0] s;
    int n;
    case (t)
      T_END: begin n = 5; s = "END\015\n"; end
      T_STORED: begin n = 8; s = "STORED\015\n"; end
      T_NOT_STORED: begin n = 12; s = "NOT_STORED\015\n"; end
      T_EXISTS: begin n = 8; s = "EXISTS\015\n"; end
      T_NOT_FOUND: begin n = 11; s = "NOT_FOUND\015\n"; end
      T_DELETED: begin n = 9; s = "DELETED\015\n"; end
      T_TOUCHED: begin n = 9; s = "TOUCHED\015\n"; end
      T_OK: begin n = 4; s = "OK\015\n"; end
      T_VERSION: begin n = 26; s = "VERSION 1.6.45-warpcache\015\n"; end
      T_MN: begin n = 4; s = "MN\015\n"; end
      T_ERROR: begin n = 7; s = "ERROR\015\n"; end
      T_FORMAT: begin n = 38; s = "CLIENT_ERROR bad command line format\015\n"; end
      T_DATA: begin n = 29; s = "CLIENT_ERROR bad data chunk\015\n"; end
      T_EXPTIME: begin n = 39; s = "CLIENT_ERROR invalid exptime argument\015\n"; end
      T_DELTA: begin n = 45; s = "CLIENT_ERROR invalid numeric delta argument\015\n"; end
      T_NONNUM: begin n = 62; s = "CLIENT_ERROR cannot increment or decrement non-numeric value\015\n"; end
      T_UNSUPPORTED: begin n = 28; s = "SERVER_ERROR not supported\015\n"; end
      T_TOOLARGE: begin n = 41; s = "SERVER_ERROR object too large for cache\015\n"; end
      B_NOT_FOUND: begin n = 9; s = "Not found"; end
      B_EXISTS: begin n = 20; s = "Data exists for key."; end
      B_TOOLARGE: begin n = 10; s = "Too large."; end
      B_INVALID: begin n = 17; s = "Invalid arguments"; end
      B_NOT_STORED: begin n = 11; s = "Not stored."; end
      B_NONNUM: begin n = 47; s = "Non-numeric server-side value for incr or decr"; end
      B_UNKNOWN: begin n = 15; s = "Unknown command"; end
      default: begin n = 16; s = "1.6.45-warpcache"; end
    endcase
    if (t == B_NONNUM) n = 46;
    text_of = {7'(n), s << (TEXT_BITS - 8 * n)};
  endfunction
  localparam int TEXTS = 26;
  localparam int CHUNKS = 128;
  typedef logic [TEXTS-1:0][6:0] places_t;
  typedef logic [CHUNKS-1:0][63:0] chunks_t;
  function automatic logic [6:0] size_of(text_t t);
    logic [TEXT_BITS+6:0] both;
    both = text_of(t);
    size_of = both[TEXT_BITS+6-:7];
  endfunction
  // The first chunk of each text, one behind the other, and all chunks; a text's first byte is at the bottom.
  function automatic places_t all_places();
    logic [6:0] at;
    at = '0;
    for (int t = 0; t < TEXTS; t++) begin
      all_places[t] = at;
      at = at + ((size_of(text_t'(t)) + 7'd7) >> 3);
    end
  endfunction
  function automatic chunks_t all_chunks();
    logic [TEXT_BITS-1:0] rest;
    int at;
    at = 0;
    all_chunks = '0;
    for (int t = 0; t < TEXTS; t++) begin
      rest = TEXT_BITS'(text_of(text_t'(t)));
      for (int n = 0; n < 8; n++) begin
        if (7'(8 * n) < size_of(text_t'(t))) begin
          all_chunks[at] = swap64(rest[TEXT_BITS-1-:64]);
          rest = rest << 64;
          at = at + 1;
        end
      end
    end
  endfunction
  function automatic places_t all_sizes();
    for (int t = 0; t < TEXTS; t++) all_sizes[t] = size_of(text_t'(t));
  endfunction
  localparam places_t PLACES = all_places();
  localparam places_t SIZES = all_sizes();
  // An index would make a memory of it, and of the register in front its address: a late one.
  function automatic logic [6:0] chosen_of(places_t all, text_t t);
    chosen_of = '0;
    for (int i = 0; i < TEXTS; i++) if (t == text_t'(i)) chosen_of |= all[i];
  endfunction
  localparam chunks_t TEXT = all_chunks();
  assign size = chosen_of(SIZES, measured);

  logic [6:0] text_at;      // chunk
  logic [6:0] text_bytes;   // that are left
  logic fetches, word_valid, word_ready, word_last;
  logic [63:0] word;
  logic [3:0] word_bytes;
  always_ff @(posedge clk) begin
    if (rst) begin
      fetches <= 1'b0;
      word_valid <= 1'b0;
    end else begin
      if (start) fetches <= follows;
      else if (word_ready && text_bytes <= 7'd8) fetches <= 1'b0;
      if (word_ready) word_valid <= fetches;
    end
    if (start) begin
      text_at <= chosen_of(PLACES, text);
      text_bytes <= chosen_of(SIZES, text);
    end else if (fetches && word_ready) begin
      text_at <= text_at + 7'd1;
      text_bytes <= text_bytes - 7'd8;
    end
    if (word_ready) begin
      word <= TEXT[text_at];
      word_last <= text_bytes <= 7'd8;
      word_bytes <= text_bytes <= 7'd8 ? text_bytes[3:0] : 4'd8;
    end
  end
  skid_buffer #(.W(69)) texts (
      .clk, .rst, .in_valid(word_valid), .in_ready(word_ready), .in_data({word_last, word_bytes, word}), .out_valid,
      .out_ready, .out_data({out_last, out_bytes, out_data})
  );
endmodule
