// SPDX-License-Identifier: Apache-2.0
//
// Puts memcached's header, UDP's and IP's before a reply. A reply of more than 1392 bytes is sent
// in several datagrams, of more than SEGMENTS_MAX it is dropped. The reply is held until it is
// complete, since its headers say its size, its checksum and the count of its datagrams.
module udp_tx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        ctx_valid,
    output logic        ctx_ready,
    input  ctx_t        ctx,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    // One for each datagram, no later than its first beat.
    output logic        eth_valid,
    input  logic        eth_ready,
    output eth_ctx_t    eth,
    output logic        eth_v6,
    output logic [11:0] eth_bytes,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    output logic        dropped   // a reply was too long
);
  // --- Reply bytes come in; each datagram's size and sum are taken.
  logic [10:0] seg_size;   // bytes so far, up to 1392
  logic [25:0] seg_sum;
  logic [7:0] seg_beats;
  logic [3:0] seg_count;   // complete datagrams of this reply
  logic too_long;

  logic payload_ready, seg_ready, reply_ready;
  logic seg_push, store;
  // A beat, and the sum of its words, which takes the cycle before.
  logic b_valid, b_ready, b_last;
  logic [63:0] masked, b_data;
  logic [3:0] b_bytes;
  logic [17:0] b_sum;
  assign masked = in_data & byte_mask(in_bytes);
  assign b_ready = payload_ready && seg_ready && reply_ready;
  assign in_ready = !b_valid || b_ready;
  always_ff @(posedge clk) begin
    if (rst) b_valid <= 1'b0;
    else if (in_ready) b_valid <= in_valid;
    if (in_ready) begin
      b_data <= masked;
      b_bytes <= in_bytes;
      b_last <= in_last;
      b_sum <= beat_sum(masked);
    end
  end
  logic step;
  assign step = b_valid && b_ready;
  logic has_bytes, closes_seg;
  assign has_bytes = b_bytes != 4'd0;
  assign closes_seg = (has_bytes && seg_beats == 8'(DATAGRAM_BEATS - 1)) ||
                      (b_last && (has_bytes || seg_beats != 8'd0));
  logic overflows;
  assign overflows = too_long || (has_bytes && seg_count == 4'(SEGMENTS_MAX));
  assign store = step && has_bytes && !overflows;
  assign seg_push = step && closes_seg && !overflows;
  logic [10:0] size_next;
  logic [25:0] sum_next;  // of 174 beats
  assign size_next = seg_size + {7'd0, b_bytes};
  assign sum_next = seg_sum + {8'd0, b_sum};
  assign dropped = step && b_last && overflows;

  logic payload_valid, payload_take;
  logic [63:0] payload;
  packet_fifo #(.W(64), .LOG(11)) payload_fifo (
      .clk, .rst, .in_valid(store), .in_ready(payload_ready), .in_data(b_data),
      .commit(step && b_last), .abort(step && overflows), .out_valid(payload_valid),
      .out_ready(payload_take), .out_data(payload)
  );
  logic seg_valid, seg_take;
  logic [10:0] s_size;
  logic [25:0] s_sum;
  packet_fifo #(.W(37), .LOG(6)) segments (
      .clk, .rst, .in_valid(seg_push), .in_ready(seg_ready),
      .in_data({size_next, sum_next}), .commit(step && b_last),
      .abort(step && overflows), .out_valid(seg_valid), .out_ready(seg_take),
      .out_data({s_size, s_sum})
  );
  logic reply_valid, reply_take;
  logic [3:0] reply_count;
  fifo #(.W(4), .LOG(5)) replies (
      .clk, .rst, .in_valid(step && b_last), .in_ready(reply_ready),
      .in_data(overflows ? 4'd0 : seg_count + {3'd0, closes_seg}), .out_valid(reply_valid),
      .out_ready(reply_take), .out_data(reply_count)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      seg_size <= '0;
      seg_sum <= '0;
      seg_beats <= '0;
      seg_count <= '0;
      too_long <= 1'b0;
    end else if (step) begin
      if (closes_seg || b_last) begin
        seg_size <= '0;
        seg_sum <= '0;
        seg_beats <= '0;
      end else if (has_bytes) begin
        seg_size <= size_next;
        seg_sum <= sum_next;
        seg_beats <= seg_beats + 8'd1;
      end
      if (b_last) begin
        seg_count <= '0;
        too_long <= 1'b0;
      end else begin
        if (seg_push) seg_count <= seg_count + 4'd1;
        if (overflows) too_long <= 1'b1;
      end
    end
  end

  // --- Datagrams go out. The header of the next one is computed while this one is sent.
  logic [3:0] sequence_number;
  logic prepares, prepared, prepare_done;
  ctx_t h;
  logic [15:0] h_ip_sum, h_udp_sum, h_udp_size;
  logic [31:0] p_udp, p_ip;
  logic [3:0] h_sequence, h_count;
  logic [10:0] h_size;
  logic p_valid;
  ctx_t p;
  logic [3:0] p_sequence, p_count;
  logic [10:0] p_size;
  logic skip;
  assign skip = reply_valid && ctx_valid && reply_count == 4'd0;
  assign prepares = reply_valid && ctx_valid && reply_count != 4'd0 && seg_valid && !p_valid;
  assign seg_take = prepares;
  logic last_segment;
  assign last_segment = sequence_number + 4'd1 == reply_count;
  assign reply_take = skip || (prepares && last_segment);
  assign ctx_ready = reply_take;

  logic [15:0] udp_size;
  assign udp_size = {5'd0, s_size} + 16'd16;
  logic p_to_h;
  assign p_to_h = p_valid && (!prepared || prepare_done);

  always_ff @(posedge clk) begin
    if (rst) begin
      sequence_number <= '0;
      p_valid <= 1'b0;
      prepared <= 1'b0;
    end else begin
      if (prepares) begin
        sequence_number <= last_segment ? 4'd0 : sequence_number + 4'd1;
        p_valid <= 1'b1;
        p <= ctx;
        p_sequence <= sequence_number;
        p_count <= reply_count;
        p_size <= s_size;
        p_udp <= {16'd0, ctx.address_sum} + {6'd0, s_sum} + 32'd17 + {15'd0, udp_size, 1'b0} +
                 {16'd0, ctx.src_port} + {16'd0, ctx.dst_port} + {16'd0, ctx.request_id} +
                 {28'd0, sequence_number} + {28'd0, reply_count};
        p_ip <= {16'd0, ctx.address_sum} + 32'h4500 + 32'h4000 + 32'h4011 + {16'd0, udp_size} + 32'd20;
      end else if (p_to_h) begin
        p_valid <= 1'b0;
      end
      if (p_to_h) begin
        prepared <= 1'b1;
        h <= p;
        h_sequence <= p_sequence;
        h_count <= p_count;
        h_size <= p_size;
        h_udp_size <= {5'd0, p_size} + 16'd16;
        h_ip_sum <= ~fold32({16'd0, fold32(p_ip)});
        h_udp_sum <= !p.has_checksum ? 16'd0 : fold32({16'd0, fold32(p_udp)}) == 16'hffff ? 16'hffff
                     : ~fold32({16'd0, fold32(p_udp)});
      end else if (prepare_done) begin
        prepared <= 1'b0;
      end
    end
  end

  typedef enum logic [3:0] {U_IDLE, U_IP0, U_IP1, U_IP2, U_IP3, U_IP4, U_UDP, U_MC, U_PAYLOAD} state_t;
  state_t state;
  logic piece_valid, piece_ready, piece_last;
  logic [63:0] piece;
  logic [4:0] piece_bytes;
  logic [10:0] left;
  packer #(.PIECE(8)) pieces (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data(piece),
      .in_bytes(piece_bytes), .in_last(piece_last), .out_valid, .out_ready, .out_data, .out_bytes,
      .out_last
  );
  logic sent;
  assign sent = piece_valid && piece_ready;
  assign eth = h.eth;
  assign eth_v6 = h.v6;
  assign eth_bytes = {1'b0, h_size} + 12'd16 + (h.v6 ? 12'd40 : 12'd20);
  assign eth_valid = state == U_IDLE && prepared && piece_ready;
  assign prepare_done = state == U_PAYLOAD && sent && piece_last;
  assign payload_take = state == U_PAYLOAD && piece_ready;

  always_comb begin
    piece_valid = state != U_IDLE || (prepared && eth_ready);
    piece = '0;
    piece_bytes = 5'd8;
    piece_last = 1'b0;
    case (state)
      U_IDLE:
      piece = h.v6 ? {8'd64, 8'd17, swap16(h_udp_size), 32'h0000_0060}
                   : {16'h0040, 16'h0000, swap16(h_udp_size + 16'd20), 16'h0045};
      U_IP0:
      piece = h.v6 ? swap64(h.dst_ip[127:64])
                   : {swap32(h.dst_ip[31:0]), swap16(h_ip_sum), 8'd17, 8'd64};
      U_IP1: begin
        piece = h.v6 ? swap64(h.dst_ip[63:0]) : {32'd0, swap32(h.src_ip[31:0])};
        piece_bytes = h.v6 ? 5'd8 : 5'd4;
      end
      U_IP2: piece = swap64(h.src_ip[127:64]);
      U_IP3: piece = swap64(h.src_ip[63:0]);
      U_UDP: piece = {swap16(h_udp_sum), swap16(h_udp_size), swap16(h.src_port), swap16(h.dst_port)};
      U_MC: piece = {16'd0, swap16({12'd0, h_count}), swap16({12'd0, h_sequence}), swap16(h.request_id)};
      default: begin
        piece_valid = payload_valid;
        piece = payload;
        piece_bytes = left > 11'd8 ? 5'd8 : {1'b0, left[3:0]};
        piece_last = left <= 11'd8;
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= U_IDLE;
    end else if (sent) begin
      case (state)
        U_IDLE: begin
          left <= h_size;
          state <= U_IP0;
        end
        U_IP0: state <= U_IP1;
        U_IP1: state <= h.v6 ? U_IP2 : U_UDP;
        U_IP2: state <= U_IP3;
        U_IP3: state <= U_UDP;
        U_UDP: state <= U_MC;
        U_MC: state <= U_PAYLOAD;
        default: begin
          left <= left - 11'd8;
          if (piece_last) state <= U_IDLE;
        end
      endcase
    end
  end
endmodule
